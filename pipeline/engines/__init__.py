"""Engines: ways to run Whisper. Each implements ``pipeline.transcription.Engine``."""
