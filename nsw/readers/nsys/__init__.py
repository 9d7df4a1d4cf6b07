"""Reports of Nsight Systems."""


def size_is_of_sent_bytes(call: str) -> bool:
    """Whether the size that an MPI call was recorded with is of what it sends; of MPI_Sendrecv that is not told."""
    return "recv" not in call.lower()
