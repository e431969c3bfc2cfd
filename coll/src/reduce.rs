//! Reductions to one member.

use crate::algorithms::Collective;
use crate::call::{Call, cut};
use crate::error::Result;
use crate::functions::{Functions, Steps, steps};
use crate::places::Places;
use crate::reduce_scatter;
use crate::reduction::Reduction;
use crate::scratch::Scratch;

type Function =
    for<'a> fn(Call<'a>, Reduction<'a>, &'a [u8], Option<&'a mut [u8]>, usize) -> Steps<'a>;

const FUNCTIONS: Functions<Function> = Functions::of(
    Collective::Reduce,
    &[
        (
            "binomial",
            steps!(binomial[call, reduction, input, out, root]),
        ),
        (
            "scatter-gather",
            steps!(scatter_gather[call, reduction, input, out, root]),
        ),
        (
            "two-level",
            steps!(two_level[call, reduction, input, out, root]),
        ),
    ],
);

/// Returns the steps of the algorithm that is chosen.
pub(crate) fn reduce<'a>(
    call: Call<'a>,
    reduction: Reduction<'a>,
    input: &'a [u8],
    out: Option<&'a mut [u8]>,
    root: usize,
) -> Result<Steps<'a>> {
    let may_reorder = call.may_reorder(&reduction);
    let algorithm = call.choose(Collective::Reduce, input.len(), may_reorder);
    Ok(FUNCTIONS.get(algorithm)?(call, reduction, input, out, root))
}

/// A binomial tree, whose shape is that of recursive doubling and the same for each root: operands stay in the order of
/// members.
///
/// Where n is no power of two, the first members are pairs of neighbours, and a pair has one place of the tree. For 6 members
/// and root 2, `>` and `<` are messages:
///
/// ```text
///     members        0 > 1   2 < 3   4   5
///     places           0       1     2   3
///     distance 1       0   >   1     2 > 3       to the one that agrees with the root's place in this bit
///     distance 2               1    <    3
/// ```
pub(crate) async fn binomial(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let result = up_the_tree(call, reduction, input, root).await?;
    if let (Some(result), Some(out)) = (result, out) {
        out.copy_from_slice(&result);
    }
    Ok(())
}

/// Returns the result to `root`.
pub(crate) async fn up_the_tree<'t>(
    call: Call<'t>,
    reduction: Reduction<'_>,
    input: &[u8],
    root: usize,
) -> Result<Option<Scratch<'t>>> {
    let (places, me) = (Places::of(call.size()), call.me());
    let (place, top) = (places.of_member(me), places.of_member(root));
    // The second of a pair goes on for both, or the root.
    let at_place = |place: usize| match place == top {
        true => root,
        false => places.member(place),
    };
    let mut sum: Option<Scratch<'_>> = None;
    if places.is_paired(me) {
        let neighbour = me ^ 1;
        if at_place(place) != me {
            call.send_pieces(input, neighbour).await?;
            return Ok(None);
        }
        sum = Some(combined(call, reduction, sum, input, neighbour).await?);
    }
    let mut mask = 1;
    while mask < places.count {
        let other = at_place(place ^ mask);
        if (place ^ top) & mask != 0 {
            // A leaf has nothing but its own.
            let sum = sum.as_deref().unwrap_or(input);
            call.send_pieces(sum, other).await?;
            return Ok(None);
        }
        sum = Some(combined(call, reduction, sum, input, other).await?);
        mask *= 2;
    }
    Ok(Some(sum.unwrap_or_else(|| call.copy(input))))
}

/// Receives what `from` has, and combines it with the `sum` of this member, or with the `input` that it has so far.
async fn combined<'t>(
    call: Call<'t>,
    reduction: Reduction<'_>,
    sum: Option<Scratch<'t>>,
    input: &[u8],
    from: usize,
) -> Result<Scratch<'t>> {
    let mut other = call.scratch(input.len());
    call.recv_pieces(&mut other, from).await?;
    let is_lower = from < call.me();
    let Some(mut sum) = sum else {
        reduction.with(&mut other, input, !is_lower)?;
        return Ok(other);
    };
    reduction.with(&mut sum, &other, is_lower)?;
    Ok(sum)
}

/// Each member combines one part and gives it to the root (Rabenseifner's, in steps of pairs).
async fn scatter_gather(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let lengths = cut(input.len(), call.size(), reduction.layout.extent());
    let own = Call::range(&lengths, call.me());
    let (true, Some(out)) = (call.me() == root, out) else {
        let mut part = call.scratch(own.len());
        reduce_scatter::pairwise(call, reduction, input, &lengths, &mut part).await?;
        return call.send_pieces(&part, root).await;
    };
    reduce_scatter::pairwise(call, reduction, input, &lengths, &mut out[own]).await?;
    for distance in 1..call.size() {
        let from = call.after(distance);
        let part = &mut out[Call::range(&lengths, from)];
        call.recv_pieces(part, from).await?;
    }
    Ok(())
}

/// Each host's sum goes to its leader, those to the root's, and from there to the root.
async fn two_level(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let levels = call.all_levels()?;
    let (host, first) = (call.among(levels.host()), levels.host_of(root));
    let sum = up_the_tree(host, reduction, input, 0).await?;
    let mut whole: Option<Scratch<'_>> = None;
    if let (Some(sum), Some(leaders)) = (sum, levels.leaders()) {
        let leaders = call.among(leaders);
        whole = (leaders.me() == first).then(|| call.scratch(sum.len()));
        reduce(leaders, reduction, &sum, whole.as_deref_mut(), first)?.await?;
    }
    let place = levels.place(root);
    match (whole, out) {
        (Some(whole), Some(out)) if call.me() == root => out.copy_from_slice(&whole),
        (Some(whole), _) => host.send(&whole, place).await?,
        (None, Some(out)) if call.me() == root => host.recv(out, 0).await?,
        _ => {}
    }
    Ok(())
}
