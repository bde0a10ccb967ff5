"""Results of the laboratory as tables of pandas, and as figures for papers.

.. code-block:: python

    from marline.lab import Paper, Results

    results = Results.open("lab-results/train")
    print(results.cells().query("metric == 'completion_s'"))
    results.boxes(paper=Paper(width_in=3.33)).save("train.pdf")

It needs pandas: ``pip install './python[lab]'``.
"""

from marline.lab.figures import Paper, PaperFigure
from marline.lab.results import Results

__all__ = ["Paper", "PaperFigure", "Results"]
