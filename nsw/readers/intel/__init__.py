"""Intel's profilers: VTune (Amplifier before 2020) and its Application Performance Snapshot."""
