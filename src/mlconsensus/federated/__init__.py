"""Statistics and models as files, and their merge across sites.

Sites share statistics, never instances. Statistics are exact, or have the noise of
differential privacy.
"""
