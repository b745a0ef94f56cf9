"""Dividing a text into shards that independent processes translate or score, and merging their outputs."""
