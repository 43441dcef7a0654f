"""The benchmark suite: cases run in processes of their own, floors, peers, and the page that shows the results."""
