"""Experiments that compare models: the demo and the ladder. One pipeline prepares data, trains, measures and reports."""
