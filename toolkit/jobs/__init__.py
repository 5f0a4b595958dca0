"""Scheduled jobs: each logical date once, from where an earlier start stopped; people are told what was missed.

Two libraries were tried in place of this room. DBOS keeps the steps of a workflow. Where starts share an executor
id, a second one does a running step again; where each has its own, nobody goes on after a kill -9, nor after an
upgrade. procrastinate runs a date again when it is started again, and does finished steps of a killed job
again. Neither tells which dates were missed.
"""
