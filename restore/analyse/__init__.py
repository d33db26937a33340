"""Look at a clip before restoring it: cuts and noise level."""
