RATES = {"DE": 19, "FR": 20}


def rate(country):
    """The tax rate as a fraction, 0.19 for 19 %."""
    return RATES[country]
