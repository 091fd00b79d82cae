"""How gapview stands up to bad input, faults and load: experiments of their own, by ``python -m``."""
