//! What operations are called where a rank says what it waits for.

/// What members do to make a group, or to agree on it.
pub(crate) struct Agreement;

/// Returns what an operation is called in a dump: its type.
pub(crate) fn operation_name<O>() -> &'static str {
    let name = std::any::type_name::<O>();
    let path = name.split_once('<').map_or(name, |(path, _)| path);
    path.rsplit_once("::").map_or(path, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_called_by_its_type() {
        assert_eq!(operation_name::<Agreement>(), "Agreement");
        assert_eq!(operation_name::<Vec<Option<u8>>>(), "Vec");
    }
}
