"""AMD's rocprofv3."""
