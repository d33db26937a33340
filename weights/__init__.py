"""The weight files that come with restore; `manifest.json` describes each of them."""
