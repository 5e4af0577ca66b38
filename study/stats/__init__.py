"""From rows to numbers: intervals, rankings, power, scores, designs, and the paper's Table 2."""
