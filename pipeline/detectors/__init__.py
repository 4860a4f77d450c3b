"""Voice-activity detectors: audio in, a speech probability per frame out; ``speech.py`` turns them into spans."""
