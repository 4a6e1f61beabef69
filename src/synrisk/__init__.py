"""What could an intruder learn about each person from this synthetic data?"""
