"""The line from a lecture video to subtitles: pure steps over frozen values, and a few thin edges.

ARCHITECTURE.md lists the steps in order, a file per step.
"""
