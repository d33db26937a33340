"""The console commands: parse, call, print, exit code."""
