"""The methods the paper compares with."""
