"""What ranmask answers with (`records`); files that are whole, versioned and locked (`files`)."""

from ranmask.results.detection import Detection, ShownDetection
from ranmask.results.records import (
    CONSTANTS,
    RESULT_VERSION,
    BetaEstimate,
    CascadeCertificate,
    CascadePrediction,
    Certificate,
    Comparison,
    MarginCertificate,
    PartitionCertificate,
    Prediction,
    ShownCertificate,
)

__all__ = [
    "CONSTANTS",
    "RESULT_VERSION",
    "BetaEstimate",
    "CascadeCertificate",
    "CascadePrediction",
    "Certificate",
    "Comparison",
    "Detection",
    "MarginCertificate",
    "PartitionCertificate",
    "Prediction",
    "ShownCertificate",
    "ShownDetection",
]
