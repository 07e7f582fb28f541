"""Making base classifiers: masked encoders and word tables, trained for what they can prove.

And detectors (`detector`), which flag a class.  And masked language models (`mlm`), which are no
classifiers: attacks ask them for words that fit.
"""
