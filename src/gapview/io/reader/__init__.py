"""A small program that reads one file of MATLAB, HDF5 or old Feather and writes plain values to its output.

The libraries behind these formats trust what a file says: wrong bytes can end the process, hang it or take all memory.
So they are only ever used in a process of its own, whose end is an error like any other. The program imports nothing of
gapview but this folder and the limits, since that would take longer than the reading.
"""
