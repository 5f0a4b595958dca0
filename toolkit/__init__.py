"""Which sales lack the evidence that the contract demands, and why?"""
