"""Making base classifiers: masked encoders and word tables, trained for what they can prove."""
