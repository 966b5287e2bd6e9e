"""Random training runs beside a model: ranks, workers, threads, epochs, killed processes."""
