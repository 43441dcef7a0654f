"""Dense and sparse products, Gram matrices and vote patterns; knows no method."""
