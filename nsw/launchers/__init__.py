"""Launchers: a layout -> the words that start a program's processes where the layout wants them, a file a launcher."""
