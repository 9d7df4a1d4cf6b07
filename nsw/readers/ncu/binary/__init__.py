""".ncu-rep, by way of ncu_report or an ncu."""
