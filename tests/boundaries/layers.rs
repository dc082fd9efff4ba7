//! The arrows between modules, read from the paths in their sources.

use std::collections::{BTreeMap, BTreeSet};

/// A module's path from the crate's root. That of the root is empty.
pub(crate) type Path = Vec<String>;

/// Who uses whom among the modules of one folder, each with all modules below it, and one path that shows it. `None` is the crate's root.
pub(crate) type Arrows = BTreeMap<(Option<String>, Option<String>), String>;

/// The arrows in each folder of a crate: by the path of the folder's module.
pub(crate) fn arrows(modules: &BTreeMap<Path, String>) -> BTreeMap<Path, Arrows> {
    let known: BTreeSet<&[String]> =
        modules.keys().flat_map(|path| (1..=path.len()).map(move |length| &path[..length])).collect();
    // The root has all modules below it.
    let below_root = known.iter().map(|path| ((None, Some(path[0].clone())), "it declares it".to_owned()));
    let mut arrows = BTreeMap::from([(Path::new(), below_root.collect::<Arrows>())]);
    for (user, code) in modules.iter().filter(|(path, _)| !path.is_empty()) {
        for used in paths_in(code) {
            let module = resolved(user, &used, &known);
            let common = user.iter().zip(&module).take_while(|(one, other)| one == other).count();
            let (from, to) = (user.get(common).cloned(), module.get(common).cloned());
            // A module and what is below it may use each other; the root is used by none.
            if from.is_some() && (to.is_some() || module.is_empty()) {
                let example = format!("{} uses {used}", user.join("::"));
                arrows.entry(user[..common].to_vec()).or_default().insert((from, to), example);
            }
        }
    }
    arrows
}

/// The arrows that are part of a circle.
pub(crate) fn circles(arrows: &Arrows) -> Arrows {
    let leads_back = |from: &Option<String>, to: &Option<String>| {
        let mut reached = BTreeSet::from([to]);
        loop {
            let next = arrows.keys().filter(|(from, _)| reached.contains(from)).map(|(_, to)| to);
            let before = reached.len();
            reached = reached.iter().copied().chain(next).collect();
            if reached.len() == before {
                return reached.contains(from);
            }
        }
    };
    let circles = arrows.iter().filter(|((from, to), _)| leads_back(from, to));
    circles.map(|(arrow, example)| (arrow.clone(), example.clone())).collect()
}

/// The module in which a path ends.
fn resolved(user: &[String], path: &str, known: &BTreeSet<&[String]>) -> Path {
    let mut module = user.to_vec();
    for name in path.split("::") {
        match name {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop();
            }
            name => {
                module.push(name.to_owned());
                if !known.contains(module.as_slice()) {
                    module.pop();
                    break;
                }
            }
        }
    }
    module
}

/// All paths of a source that begin at the crate's root or at a module.
fn paths_in(code: &str) -> Vec<String> {
    let starts = ["crate::", "self::", "super::"].into_iter().flat_map(|start| code.match_indices(start));
    let is_whole = |at: usize| !code[..at].ends_with(|letter: char| letter.is_alphanumeric() || "_:$".contains(letter));
    starts.filter(|(at, _)| is_whole(*at)).flat_map(|(at, _)| paths_of(&code[at..])).collect()
}

/// The paths at the beginning of a text: `a::{b, c::D}` are `a::b` and `a::c::D`.
fn paths_of(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    if !path.ends_with("::") || !rest.starts_with('{') {
        return vec![path.to_owned()];
    }
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for letter in rest.chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        match letter {
            '{' if depth == 1 => {}
            '}' if depth == 0 => break,
            ',' if depth == 1 => parts.push(String::new()),
            letter => parts.last_mut().unwrap().push(letter),
        }
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(paths_of).map(|inner| format!("{path}{inner}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(sources: &[(&str, &str)]) -> Vec<String> {
        let path = |name: &str| name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let modules = sources.iter().map(|(name, code)| (path(name), (*code).to_owned())).collect();
        arrows(&modules).values().flat_map(circles).map(|(_, example)| example).collect()
    }

    #[test]
    fn a_circle_is_found_with_the_paths_that_make_it() {
        let sources = [("a", "use crate::b::c::D;"), ("b::c", "use crate::{\n    d,\n    a::{E, F},\n};"), ("d", "")];
        assert_eq!(circles_of(&sources), ["a uses crate::b::c::D", "b::c uses crate::a::F"]);
        assert_eq!(circles_of(&[("a", "use crate::b::c::D;"), ("b::c", "use crate::d;"), ("d", "")]), [""; 0]);
    }

    #[test]
    fn a_circle_within_a_folder_is_found() {
        let sources = [("a::b", "super::c::D"), ("a::c", "use super::e;"), ("a::e", "crate::a::b::F")];
        assert_eq!(circles_of(&sources).len(), 3);
        assert_eq!(circles_of(&[("a", "use self::b::C;"), ("a::b", "use super::D; use crate::a::E;")]), [""; 0]);
    }

    #[test]
    fn nothing_uses_the_root() {
        assert_eq!(circles_of(&[("a", "crate::B"), ("c", "d")]).len(), 2);
        assert_eq!(circles_of(&[("a", "other_crate::B"), ("", "crate::a")]), [""; 0]);
    }
}
