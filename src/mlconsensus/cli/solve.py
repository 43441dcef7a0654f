"""`mlconsensus solve`: the sites' statistics in, one model out."""

import hashlib

import click

from ..errors import expect
from ..terminal import plural
from .options import print_json, say
from .output import check_place, force_option, json_option


@click.command("solve", short_help="Add up sites' statistics and solve them to one model.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--output", "-o", required=True, metavar="FILE", help="Where to write the model.")
@click.option("--without", multiple=True, metavar="FILE", help="Take these statistics back out of the sum; repeatable.")
@click.option("--sums", metavar="FILE", help="Write the sum too, as statistics to add to, or take from, later.")
@force_option
@json_option
def command(
    files: tuple[str, ...], output: str, without: tuple[str, ...], sums: str | None, force: bool, as_json: bool
) -> None:
    """Add up the statistics in FILE..., one file a site, and write the model that they give.

    The model equals the one that all sites' data together would give. It has no statistics in it.

    \b
    Examples:
      mlconsensus solve a.stats b.stats c.stats --output consensus.model
      mlconsensus solve week.stats today.stats --without monday.stats --sums new.stats -o consensus.model
    """
    from ..io.files import raw_bytes
    from ..sites.state import load, merge, save, save_statistics, subtract

    for place in filter(None, (output, sums)):
        check_place((*files, *without), place, force)
    parts = [load(file) for file in files]
    first_with: dict[bytes, str] = {}
    for file in (*files, *without):
        first = first_with.setdefault(hashlib.sha256(raw_bytes(file)).digest(), file)
        expect(first is file, file, f"the same content as in {first}", "each site once")
    combined = merge(parts, files)
    for file in without:
        combined = subtract(combined, load(file), ("the sum", file))
    if sums is not None:
        save_statistics(combined, sums, force=force)
    save(combined, output, force=force)
    going_on = combined.progress() if combined.unfinished else None
    m, l, n = len(combined.models_), len(combined.labels_), combined.n_instances_
    if as_json:
        done = {"method": combined.name, "models": combined.models_, "labels": l, "instances": n}
        done |= {"sites": len(files), "privacy": combined.privacy_, "unfinished": going_on, "output": output}
        print_json(done)
        return
    of = plural(n or 0, "instance") if combined.privacy_ is None else f"private statistics ({combined.privacy_})"
    what = combined.name if going_on is None else f"{going_on} of {combined.name}"
    sites = plural(len(files), "file") + (f", without {plural(len(without), 'file')}," if without else "")
    say(f"solved {what} for {plural(m, 'model')} × {plural(l, 'label')} from {sites} of {of} → {output}")
    if going_on is not None:
        say(f"every site goes on with 'mlconsensus statistics … --after {output}'")
