"""Tools for those who work on ranmask; none is part of the package."""
