"""What ranmask answers with (`records`); files that are whole, versioned and locked (`files`)."""

from ranmask.results.records import (
    RESULT_VERSION,
    BetaEstimate,
    CascadeCertificate,
    CascadePrediction,
    Certificate,
    Comparison,
    Prediction,
    ShownCertificate,
)

__all__ = [
    "RESULT_VERSION",
    "BetaEstimate",
    "CascadeCertificate",
    "CascadePrediction",
    "Certificate",
    "Comparison",
    "Prediction",
    "ShownCertificate",
]
