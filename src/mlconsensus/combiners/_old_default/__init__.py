"""The default method until `WeightedConsensus` is written from its derivation; it will be deleted."""
