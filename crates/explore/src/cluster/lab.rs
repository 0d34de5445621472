//! Runs that begin where another one was, not at the start.
//!
//! A run without faults is saved at some places: its nodes make copies of themselves, which wait. A
//! run whose faults come later begins with copies of these. It is the same as from the start: what
//! a run does follows from its seed and its faults, and none of these has begun.
//!
//! With a cluster is kept what its nodes' own folders have, and a run begins with that. Files stay
//! the same files, since copies of nodes have them open.

use super::coordinator::{Cluster, MOST_NODES, Plan, Run, Saved};
use super::members::{Door, Link, RunFolder, Spec};
use std::collections::BTreeMap;

/// The place of runs, and saved clusters.
pub(super) struct Lab<'a> {
    spec: &'a Spec,
    place: RunFolder,
    door: Door,
    saved: Vec<Saved>,
}

/// Runs a cluster once, from the start.
pub fn run(spec: &Spec, plan: &Plan) -> Result<Run, String> {
    Lab::new(spec, plan.seed)?.run(plan)
}

impl<'a> Lab<'a> {
    pub fn new(spec: &'a Spec, seed: u64) -> Result<Lab<'a>, String> {
        if spec.nodes == 0 || spec.nodes > MOST_NODES {
            return Err(format!("a cluster has from 1 to {MOST_NODES} nodes"));
        }
        let place = RunFolder::new(seed)?;
        let door = Door::new(&place.folder).map_err(|e| e.to_string())?;
        Ok(Lab {
            spec,
            place,
            door,
            saved: Vec::new(),
        })
    }

    /// Runs the cluster from the start.
    pub fn run(&mut self, plan: &Plan) -> Result<Run, String> {
        Ok(self.start_to_end(plan, &[])?.0)
    }

    /// Runs the cluster from the start, and saves it after these turns.
    pub fn run_and_save(&mut self, plan: &Plan, turns: &[u64]) -> Result<Run, String> {
        let (run, saved) = self.start_to_end(plan, turns)?;
        self.saved = saved;
        Ok(run)
    }

    fn start_to_end(&mut self, plan: &Plan, turns: &[u64]) -> Result<(Run, Vec<Saved>), String> {
        self.clean(&BTreeMap::new())?;
        let mut cluster = Cluster::new(self.spec, plan, &self.place, &mut self.door);
        cluster.cuts = turns.iter().copied().collect();
        cluster.begin()
    }

    fn clean(&self, outputs: &BTreeMap<u32, u64>) -> Result<(), String> {
        let cleaned = self.place.clean(self.spec.nodes, outputs);
        cleaned.map_err(|e| format!("{}: {e}", self.place.folder.display()))
    }

    /// Forgets saved clusters.
    pub fn forget(&mut self) {
        self.saved.clear();
    }

    /// Runs the cluster from the latest saved one that has no fault of the plan behind it.
    pub fn branch(&mut self, plan: &Plan) -> Result<Run, String> {
        let fits = |s: &Saved| plan.faults.iter().all(|f| s.world.is_before(f));
        let Some(at) = self.saved.iter().rposition(fits) else {
            return self.run(plan);
        };
        match self.resume(at, plan) {
            Ok(run) => Ok(run),
            // A node is gone that should wait.
            Err(_) => {
                self.forget();
                self.run(plan)
            }
        }
    }

    fn resume(&mut self, at: usize, plan: &Plan) -> Result<Run, String> {
        let world = self.saved[at].world.clone();
        self.clean(world.outputs())?;
        let filled = self.place.bring_back(&self.saved[at].kept);
        filled.map_err(|e| e.to_string())?;
        let mut links = Vec::new();
        for copy in &mut self.saved[at].copies {
            let mut link = Link::default();
            if let Some(stream) = copy.take() {
                let mut saved = Link {
                    stream: Some(stream),
                    child: None,
                };
                link.stream = Some(saved.copy(&mut self.door)?);
                *copy = saved.stream;
            }
            links.push(link);
        }
        let mut cluster = Cluster::new(self.spec, plan, &self.place, &mut self.door);
        cluster.links = links;
        cluster.world = world;
        Ok(cluster.resume()?.0)
    }
}
