"""Measurements behind `pushcen bench ...`: each file measures one part. What is measured lives elsewhere."""
