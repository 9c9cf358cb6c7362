"""The compiler: a PyTorch model and samples in, a Program out."""
