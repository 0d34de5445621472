//! The processor's energy counters (RAPL), as the kernel exposes them under `/sys/class/powercap`.
//!
//! A counter counts microjoules and wraps at the value in a file beside it. It must be read more
//! often than it wraps: [`Meter::sample`] adds the increase since the last reading. Counters of
//! packages include cores and graphics; memory has counters of its own. A counter that cannot be
//! read is left out; if no package can be read there is no meter. The counters belong to the
//! machine: they include whatever else runs meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum time between readings: the smallest counters last minutes under full load.
pub const SAMPLE_EVERY: std::time::Duration = std::time::Duration::from_secs(10);

struct Counter {
    file: PathBuf,
    /// The value at which it wraps.
    range: u64,
    last: u64,
}

/// The counters of packages and memory, and the sum of their increases since the meter was made.
#[derive(Default)]
pub struct Meter {
    counters: Vec<Counter>,
    microjoules: u64,
    /// Whether a counter has become unreadable, so that there is no sum.
    lost: bool,
}

impl Meter {
    pub fn of_system() -> Meter {
        Meter::below(Path::new("/sys/class/powercap"))
    }

    /// A meter of the zones in a folder.
    pub fn below(folder: &Path) -> Meter {
        let mut meter = Meter::default();
        let Ok(entries) = fs::read_dir(folder) else {
            return meter;
        };
        // Zones of one processor appear under each of its interfaces (`intel-rapl`,
        // `intel-rapl-mmio`). One is enough.
        let mut zones: Vec<PathBuf> = entries
            .flatten()
            .map(|e| e.path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("intel-rapl:") || name.starts_with("amd-rapl:")
            })
            .collect();
        zones.sort();
        let mut packages = 0;
        for zone in zones {
            let name = fs::read_to_string(zone.join("name")).unwrap_or_default();
            let package = name.starts_with("package");
            if !package && name.trim_end() != "dram" {
                continue;
            }
            let file = zone.join("energy_uj");
            let range = number(&zone.join("max_energy_range_uj"));
            if let (Some(last), Some(range)) = (number(&file), range) {
                packages += usize::from(package);
                meter.counters.push(Counter { file, range, last });
            }
        }
        if packages == 0 {
            meter.counters.clear();
        }
        meter
    }

    /// Whether there is a counter to read.
    pub fn is_there(&self) -> bool {
        !self.counters.is_empty() && !self.lost
    }

    /// Adds the increase since the last reading, and returns the sum so far in microjoules.
    pub fn sample(&mut self) -> Option<u64> {
        for counter in &mut self.counters {
            let Some(now) = number(&counter.file) else {
                self.lost = true;
                return None;
            };
            self.microjoules += if now >= counter.last {
                now - counter.last
            } else {
                // It has wrapped to zero after its largest value.
                (counter.range.saturating_sub(counter.last)).saturating_add(now)
            };
            counter.last = now;
        }
        self.is_there().then_some(self.microjoules)
    }
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Zones(PathBuf);

    impl Zones {
        fn new(name: &str) -> Zones {
            let folder =
                std::env::temp_dir().join(format!("purlin-rapl-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).expect("makes a folder");
            Zones(folder)
        }

        fn zone(&self, zone: &str, name: &str, energy: u64) {
            let folder = self.0.join(zone);
            fs::create_dir_all(&folder).expect("makes a zone");
            fs::write(folder.join("name"), format!("{name}\n")).expect("writes");
            fs::write(folder.join("max_energy_range_uj"), "1000\n").expect("writes");
            fs::write(folder.join("energy_uj"), format!("{energy}\n")).expect("writes");
        }
    }

    impl Drop for Zones {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn packages_and_memory_are_summed_and_wrap() {
        let zones = Zones::new("sum");
        zones.zone("intel-rapl:0", "package-0", 900);
        zones.zone("intel-rapl:0:0", "core", 500);
        zones.zone("intel-rapl:0:1", "dram", 10);
        zones.zone("intel-rapl:1", "psys", 7);
        zones.zone("intel-rapl-mmio:0", "package-0", 900);
        let mut meter = Meter::below(&zones.0);
        assert!(meter.is_there());
        zones.zone("intel-rapl:0", "package-0", 950);
        zones.zone("intel-rapl:0:0", "core", 540);
        assert_eq!(meter.sample(), Some(50));
        // Wrapped: 50 up to the end, 20 from zero.
        zones.zone("intel-rapl:0", "package-0", 20);
        zones.zone("intel-rapl:0:1", "dram", 13);
        assert_eq!(meter.sample(), Some(50 + 70 + 3));
        fs::remove_file(zones.0.join("intel-rapl:0/energy_uj")).expect("was there");
        assert_eq!(meter.sample(), None);
        assert!(!meter.is_there());
    }

    #[test]
    fn without_packages_there_is_no_meter() {
        let zones = Zones::new("none");
        zones.zone("intel-rapl:0:1", "dram", 10);
        assert_eq!(Meter::below(&zones.0).sample(), None);
        zones.zone("intel-rapl:0", "package-0", 1);
        fs::write(zones.0.join("intel-rapl:0/energy_uj"), "many\n").expect("writes");
        assert!(!Meter::below(&zones.0).is_there());
        assert!(!Meter::below(&zones.0.join("nowhere")).is_there());
    }
}
