"""Campaigns that try to break dragoman. `make torture` runs them for hours; samples of them are ordinary tests."""
