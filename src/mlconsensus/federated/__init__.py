"""Statistics and models as files, merged across sites that share no instance, exact or with differential privacy."""
