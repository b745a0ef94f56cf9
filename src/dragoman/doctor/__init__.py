"""Checks of training data: `examination.examine` reports findings, `fix.fix_documents` cleans the texts."""
