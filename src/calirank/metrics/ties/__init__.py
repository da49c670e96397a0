"""Tied scores: the expected ERR of a tie group over all orders of its items, without enumerating them.

**Setting.** m items with stop probabilities R_i share the ranks a..a+m-1 in uniformly random order, and the first T of
these ranks count (T = m without a cut-off). F_t is the probability that one of the first t items stops, and F_0 = 0:
F_t = 1 - e_t(1-R)/C(m, t). The group contributes, times the survival of the items before it,

    V = Σ_{t=1}^{T} (F_t - F_{t-1})/(a+t-1) = Σ_{t=1}^{T-1} F_t/((a+t-1)(a+t)) + F_T/(a+T-1).

**Small groups.** Items come one after the other, and item j+1 is among the first t of j+1 with probability t/(j+1):
F'_t = (1 - t/(j+1)) F_t + t/(j+1) (R + (1-R) F_{t-1}). All terms are positive, so nothing cancels, not even for R =
1e-12. By Maclaurin's inequality 1 - F_t ≤ (1 - ΣR/m)^t, and t stops where this is below 1e-18. Cost: (number of items
with R > 0)·t.

**Large groups without a cut-off.** 1 - F_t are the coefficients of Q(s) = Π_i (1 - s R_i) in the Bernstein basis of
degree m: give every item an arrival time uniform in [0, 1], and Q(s) is the probability that nobody stops before time
s. With 1/(a+t) = ∫ z^(a+t-1) dz and z put together with the time,

    V = ∫_0^1 -Q'(s) K(s) ds,   K(s) = ₂F₁(1, m+1; a+m+1; 1-s)/(a+m).

Both factors are positive and K falls. Q(s) ≤ exp(-s ΣR), so s ends at min(1, 41.5/ΣR). The scales of s run from
a/m to this end, hence the trapezoidal rule in a variable like log s that falls off doubly exponentially on both sides
(Takahasi and Mori 1974), with some 80 nodes. Q at the nodes: log Π (1 - s R_i) = -Σ_k s^k Σ_i R_i^k/k from power sums
where s R_i ≤ 1/4 to the end; Σ s R_i ≤ 41.5 leaves at most 166 other items, which are multiplied out. Cost: one pass
over the items for each of at most 24 power sums, and a number of operations that does not depend on m.

**With a cut-off.** The first T items are a random subset, so the same integral holds with T for m and, for Q,
Q_T(s) = e_T(1 - sR)/C(m, T), the mean of Π (1 - s R_i) over all subsets of T items. Cauchy's formula for the
coefficient of z^T in Π_i (1 + z(1 - s R_i)) = (1+z)^m Q(s z/(1+z)), on the circle |z| = T/(m-T), gives Q_T as a
weighted sum of Q(w s) over at most 36 complex points w = z/(1+z). The weights are the characteristic function of a
binomial distribution, whose variance T(1 - T/m) says how many points make the sum exact to rounding. Cost: that many
times the above.
"""
