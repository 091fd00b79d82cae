"""Experiments on gapview: the paper reproduced, the league, speed, scale, reliability and fits on a cluster."""
