"""Reports of Nsight Systems."""


def bytes_are_sent(call: str) -> bool:
    """Whether the size that an MPI call was recorded with is of what it sends; of MPI_Sendrecv that is not told."""
    return "recv" not in call.lower()
