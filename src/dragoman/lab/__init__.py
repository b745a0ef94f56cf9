"""Text that the project writes itself, so that everything can be tried without a download."""
