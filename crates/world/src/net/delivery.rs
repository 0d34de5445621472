//! Time that passes: what arrives, and machines that stop and start.

use super::sockets::{Event, Net};
use super::states::MachineId;

impl Net {
    /// Returns the time of the next event.
    pub fn next_time(&self) -> Option<u64> {
        self.events.next_time()
    }

    /// Advances the clock to a time: everything that is due by then happens.
    pub fn run_until(&mut self, time: u64) {
        while let Some((at, event)) = self.events.pop(time) {
            self.now = self.now.max(at);
            let is_up = |id: MachineId| self.machines.get(&id).is_some_and(|m| m.is_up);
            match &event {
                Event::Packet(p) if !is_up(p.receiver) => continue,
                Event::Datagram(d) if !is_up(d.receiver) => continue,
                _ => {}
            }
            if self.hold(&event) {
                continue;
            }
            match event {
                Event::Packet(packet) => self.arrive(packet),
                Event::Datagram(datagram) => self.datagram(datagram),
                Event::Again(id, times) => self.again(id, times),
                Event::Forget(id) => self.forget(id),
            }
        }
        self.now = self.now.max(time);
    }

    /// Cuts the power of a machine: its sockets are gone, and the other ends do not learn it.
    pub fn machine_stops(&mut self, id: MachineId) {
        if let Some(machine) = self.machines.get_mut(&id) {
            machine.is_up = false;
            machine.waiting.clear();
        }
        self.sockets.retain(|_, s| s.machine != id);
    }

    /// Starts a machine again. It answers steps of its former connections with resets.
    pub fn machine_starts(&mut self, id: MachineId) {
        if let Some(machine) = self.machines.get_mut(&id) {
            machine.is_up = true;
        }
    }
}
