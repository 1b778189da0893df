"""Compares the greedy tokens of a layout with those of one process."""

PLACES = 24  # tokens per prompt
TIE = 1e-3  # of log probabilities of f32: below it rounding decides which token is likeliest


def compare(found, alone):
    """Returns (right or not, message) for {prompt: (tokens, gaps between the two likeliest)}."""
    equal, ties, wrong = 0, [], []
    for number, (tokens, _) in found.items():
        wanted, gaps = alone[number]
        first = next((i for i in range(PLACES) if tokens[i] != wanted[i]), None)
        if first is None:
            equal += 1
        else:
            (ties if gaps[first] < TIE else wrong).append(f"{number} from token {first} on (gap {gaps[first]:.2g})")
    say = f"{equal} of {len(alone)} prompts as one process"
    say += "".join(f"; {what}: " + ", ".join(which) for what, which in (("ties", ties), ("WRONG", wrong)) if which)
    return not wrong and len(found) == len(alone), say


def gaps_of(places):
    """Returns the gap between the two likeliest log probabilities of each place."""
    best = [sorted(logprobs, reverse=True)[:2] for logprobs in places]
    return [first - second for first, second in best]
