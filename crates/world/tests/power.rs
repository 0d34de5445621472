//! Disks whose machine loses its power: the outcomes that are possible, all of them and no others,
//! and the space that files take.

use purlin_world::disk::{Access, Caller, Disk, How, Journal, Loss, ROOT, Stat};
use purlin_world::streams::{Stream, Use};
use purlin_world::{Errno, Refusal};
use std::collections::BTreeSet;

const CALLER: Caller = Caller {
    cwd: ROOT,
    umask: 0,
    privileged: false,
};

/// Enough that each outcome of a test is drawn.
const SEEDS: u64 = 400;

fn how() -> How {
    How {
        create: true,
        ..How::new(Access::ReadWrite)
    }
}

fn disk(journal: Journal) -> Disk {
    Disk::new(1 << 20, journal)
}

/// Writes a file, and syncs it if wanted.
fn put(disk: &mut Disk, path: &str, data: &[u8], sync: bool) {
    let mut file = disk
        .open(&CALLER, path.as_bytes(), how(), 0o600)
        .expect("a file");
    assert_eq!(disk.write(&mut file, data), Ok(data.len()));
    if sync {
        disk.fsync(&file).expect("a sync");
    }
    disk.close(file);
}

fn mkdir(disk: &mut Disk, path: &str) {
    disk.mkdir(&CALLER, path.as_bytes(), 0o700)
        .expect("a folder");
}

fn rename(disk: &mut Disk, from: &str, to: &str) {
    disk.rename(&CALLER, from.as_bytes(), to.as_bytes())
        .expect("a new name");
}

fn sync_folder(disk: &mut Disk, path: &str) {
    let folder = disk.open(&CALLER, path.as_bytes(), How::new(Access::Read), 0);
    let folder = folder.expect("a folder");
    disk.fsync(&folder).expect("a sync");
    disk.close(folder);
}

fn exists(disk: &Disk, path: &str) -> bool {
    disk.stat(&CALLER, path.as_bytes(), false).is_ok()
}

fn contents(disk: &mut Disk, path: &str) -> Option<Vec<u8>> {
    let mut file = disk
        .open(&CALLER, path.as_bytes(), How::new(Access::Read), 0)
        .ok()?;
    let data = disk.read(&mut file, 1 << 20).expect("its contents");
    disk.close(file);
    Some(data)
}

/// Returns what `look` sees after the loss, over many seeds.
fn outcomes<T: Ord>(disk: &Disk, loss: Loss, look: impl Fn(&mut Disk) -> T) -> BTreeSet<T> {
    let after = (0..SEEDS).map(|seed| {
        let mut disk = disk.clone();
        disk.power(loss, &mut Stream::new(seed, 1, 0, Use::Disk));
        look(&mut disk)
    });
    after.collect()
}

const JOURNALS: [Journal; 2] = [Journal::Whole, Journal::PerFolder];

#[test]
fn unsynced_writes_leave_a_prefix_torn_at_sectors() {
    for journal in JOURNALS {
        let mut disk = disk(journal);
        put(&mut disk, "f", &[1; 700], true);
        let mut file = disk.open(&CALLER, b"f", how(), 0).expect("a file");
        disk.pwrite(&file, &[2; 900], 300).expect("a write");
        disk.ftruncate(&file, 100).expect("a length");
        disk.write(&mut file, &[3; 10]).expect("a write");
        let with = |first: &[u8], n: usize| [first, &vec![2; n]].concat();
        let expected = [
            vec![1; 700],
            [with(&[1; 300], 212), vec![1; 188]].concat(),
            with(&[1; 300], 724),
            with(&[1; 300], 900),
            vec![1; 100],
            [[3; 10].to_vec(), vec![1; 90]].concat(),
        ];
        let seen = outcomes(&disk, Loss::Drawn, |d| {
            contents(d, "f").expect("a synced file")
        });
        assert_eq!(seen, expected.clone().into());
        let seen = outcomes(&disk, Loss::All, |d| {
            contents(d, "f").expect("a synced file")
        });
        assert_eq!(seen, [expected[0].clone()].into());
        disk.fsync(&file).expect("a sync");
        for loss in [Loss::Drawn, Loss::All] {
            let seen = outcomes(&disk, loss, |d| contents(d, "f").expect("a synced file"));
            assert_eq!(seen, [expected[5].clone()].into());
        }
    }
}

#[test]
fn a_rename_without_a_sync_may_leave_an_empty_file() {
    for journal in JOURNALS {
        let (old, new) = (vec![1; 10], vec![2; 600]);
        for sync in [false, true] {
            let mut disk = disk(journal);
            put(&mut disk, "f", &old, true);
            put(&mut disk, "tmp", &new, sync);
            rename(&mut disk, "tmp", "f");
            let seen = outcomes(&disk, Loss::Drawn, |d| {
                contents(d, "f").expect("one of both")
            });
            let mut expected = BTreeSet::from([old.clone(), new.clone()]);
            if !sync {
                expected.extend([vec![], vec![2; 512]]);
            }
            assert_eq!(seen, expected);
            if sync {
                sync_folder(&mut disk, ".");
                for loss in [Loss::Drawn, Loss::All] {
                    let seen = outcomes(&disk, loss, |d| contents(d, "f"));
                    assert_eq!(seen, [Some(new.clone())].into());
                }
            }
        }
    }
}

#[test]
fn changes_of_one_folder_persist_in_order() {
    let two = |first: &str, second: &str, journal| {
        let mut disk = disk(journal);
        mkdir(&mut disk, "a");
        mkdir(&mut disk, "b");
        disk.sync_all();
        put(&mut disk, first, &[], false);
        put(&mut disk, second, &[], false);
        outcomes(&disk, Loss::Drawn, |d| {
            (exists(d, first), exists(d, second))
        })
    };
    let in_order = BTreeSet::from([(false, false), (true, false), (true, true)]);
    assert_eq!(two("a/x", "a/y", Journal::Whole), in_order);
    assert_eq!(two("a/x", "a/y", Journal::PerFolder), in_order);
    assert_eq!(two("a/x", "b/y", Journal::Whole), in_order);
    let any = [(false, false), (true, false), (true, true), (false, true)];
    assert_eq!(two("a/x", "b/y", Journal::PerFolder), any.into());
}

#[test]
fn a_sync_of_a_file_persists_what_leads_to_it() {
    for journal in JOURNALS {
        let mut disk = disk(journal);
        mkdir(&mut disk, "other");
        mkdir(&mut disk, "a");
        rename(&mut disk, "a", "b");
        mkdir(&mut disk, "b/c");
        put(&mut disk, "b/c/before", &[], false);
        put(&mut disk, "b/c/f", &[7; 9], true);
        put(&mut disk, "b/c/after", &[], false);
        let look = |d: &mut Disk| {
            assert!(exists(d, "b/c/before"));
            (contents(d, "b/c/f"), exists(d, "b/c/after"))
        };
        let file = Some(vec![7; 9]);
        assert_eq!(
            outcomes(&disk, Loss::All, look),
            [(file.clone(), false)].into()
        );
        let both = [(file.clone(), false), (file, true)];
        assert_eq!(outcomes(&disk, Loss::Drawn, look), both.into());
    }
}

#[test]
fn a_rename_between_folders_is_whole() {
    for journal in JOURNALS {
        let mut disk = disk(journal);
        mkdir(&mut disk, "a");
        mkdir(&mut disk, "b");
        put(&mut disk, "a/f", &[5], true);
        disk.sync_all();
        put(&mut disk, "b/x", &[], false);
        rename(&mut disk, "a/f", "b/f");
        put(&mut disk, "a/y", &[], false);
        let seen = outcomes(&disk, Loss::Drawn, |d| {
            (
                contents(d, "a/f"),
                contents(d, "b/f"),
                exists(d, "b/x"),
                exists(d, "a/y"),
            )
        });
        let file = Some(vec![5]);
        let expected = [
            (file.clone(), None, false, false),
            (file.clone(), None, true, false),
            (None, file.clone(), true, false),
            (None, file.clone(), true, true),
        ];
        assert_eq!(seen, expected.into());
    }
}

#[test]
fn a_removed_file_may_come_back_with_its_synced_contents() {
    for journal in JOURNALS {
        let mut disk = disk(journal);
        put(&mut disk, "f", &[1; 5], true);
        disk.unlink(&CALLER, b"f").expect("a file");
        assert_eq!(disk.used(), 0);
        let seen = outcomes(&disk, Loss::Drawn, |d| (contents(d, "f"), d.used()));
        assert_eq!(seen, [(None, 0), (Some(vec![1; 5]), 4096)].into());
        disk.sync_all();
        assert_eq!(
            outcomes(&disk, Loss::Drawn, |d| exists(d, "f")),
            [false].into()
        );
    }
}

#[test]
fn what_was_open_is_refused_after_a_loss() {
    let mut disk = disk(Journal::Whole);
    let mut file = disk.open(&CALLER, b"f", how(), 0o600).expect("a file");
    disk.fsync(&file).expect("a sync");
    disk.power(Loss::All, &mut Stream::from_state(1));
    assert!(matches!(
        disk.read(&mut file, 1),
        Err(Refusal::NotModelled(_))
    ));
    assert!(matches!(
        disk.write(&mut file, b"x"),
        Err(Refusal::NotModelled(_))
    ));
    assert!(matches!(disk.fsync(&file), Err(Refusal::NotModelled(_))));
    disk.close(file);
    assert_eq!(contents(&mut disk, "f"), Some(vec![]));
}

#[test]
fn a_full_disk_writes_what_fits() {
    let mut disk = Disk::new(3 * 4096, Journal::Whole);
    let mut file = disk.open(&CALLER, b"f", how(), 0o600).expect("a file");
    assert_eq!(disk.write(&mut file, &[1; 5000]), Ok(5000));
    assert_eq!(disk.write(&mut file, &[2; 9000]), Ok(3 * 4096 - 5000));
    assert_eq!(disk.write(&mut file, &[3]), Err(Errno::ENOSPC.into()));
    // Pages that are there may be written again, and a hole takes none.
    assert_eq!(disk.pwrite(&file, &[4; 10], 4090), Ok(10));
    assert_eq!(disk.ftruncate(&file, 1 << 30), Ok(()));
    assert_eq!(disk.pwrite(&file, &[5], 1 << 20), Err(Errno::ENOSPC.into()));
    assert_eq!(disk.ftruncate(&file, 4096), Ok(()));
    assert_eq!(disk.pwrite(&file, &[5; 100], (1 << 20) - 50), Ok(100));
    assert_eq!(disk.used(), 3 * 4096);
    disk.unlink(&CALLER, b"f").expect("a file");
    assert_eq!(disk.used(), 3 * 4096);
    disk.close(file);
    assert_eq!(disk.used(), 0);
}

/// Any program leaves a tree whose numbers of links and used space are right, and that a second
/// loss does not change.
#[test]
fn each_loss_leaves_a_whole_tree() {
    for seed in 0..600 {
        let mut numbers = Stream::from_state(seed);
        let mut disk = disk(JOURNALS[(seed % 2) as usize]);
        let path = |numbers: &mut Stream| {
            let parts = 1 + numbers.below(3);
            let parts: Vec<&str> = (0..parts)
                .map(|_| ["a", "b", "c", "d"][numbers.below(4) as usize])
                .collect();
            parts.join("/").into_bytes()
        };
        for _ in 0..80 {
            let (a, b) = (path(&mut numbers), path(&mut numbers));
            let _ = match numbers.below(9) {
                0..3 => disk.mkdir(&CALLER, &a, 0o700),
                3 | 4 => disk.rename(&CALLER, &a, &b),
                5 => disk
                    .rmdir(&CALLER, &a)
                    .or_else(|_| disk.unlink(&CALLER, &a)),
                6 => disk.link(&CALLER, &a, &b),
                n => disk.open(&CALLER, &a, how(), 0o600).map(|mut file| {
                    let _ = disk.write(&mut file, &[7; 5000]);
                    if n == 7 && numbers.below(3) == 0 {
                        let _ = disk.fsync(&file);
                    }
                    disk.close(file);
                }),
            };
        }
        disk.power(Loss::Drawn, &mut numbers);
        let tree = tree(&mut disk);
        disk.power(Loss::Drawn, &mut numbers);
        assert_eq!(self::tree(&mut disk), tree, "seed {seed}");
    }
}

/// Returns all paths with their states, and checks the numbers of links and of pages.
fn tree(disk: &mut Disk) -> Vec<(Vec<u8>, Stat, Option<Vec<u8>>)> {
    let mut out = Vec::new();
    let mut todo = vec![b"/".to_vec()];
    while let Some(path) = todo.pop() {
        for name in disk.list(&CALLER, &path).unwrap_or_default() {
            let below = [&path[..], &name, b"/"].concat();
            let plain = &below[..below.len() - 1];
            let stat = disk
                .stat(&CALLER, plain, false)
                .expect("a name in the list");
            let text = String::from_utf8_lossy(plain).into_owned();
            out.push((plain.to_vec(), stat, contents_of(disk, &text)));
            assert!(out.len() < 10_000, "folders are below themselves");
            todo.push(below);
        }
    }
    let files = out.iter().filter(|o| o.2.is_some());
    let mut used = std::collections::BTreeMap::new();
    for (path, stat, data) in files.clone() {
        let same = files.clone().filter(|o| o.1.inode == stat.inode).count();
        assert_eq!(
            stat.links as usize,
            same,
            "{}",
            String::from_utf8_lossy(path)
        );
        used.insert(
            stat.inode,
            data.as_ref().map_or(0, |d| d.len().div_ceil(4096)),
        );
    }
    assert_eq!(disk.used(), used.into_values().sum::<usize>() as u64 * 4096);
    out
}

fn contents_of(disk: &mut Disk, path: &str) -> Option<Vec<u8>> {
    let kind = disk
        .stat(&CALLER, path.as_bytes(), false)
        .expect("a path")
        .kind;
    (kind == purlin_world::disk::Kind::File).then(|| contents(disk, path).expect("a file"))
}
