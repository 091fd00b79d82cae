"""The command line: every module parses the options of a command, calls the library, and prints what was done."""
