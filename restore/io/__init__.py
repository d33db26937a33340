"""Read and write video files; the only package that imports av."""
