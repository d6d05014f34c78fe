//! The machine of a measurement, in words, without its name.

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Returns the number and kind of processors, the memory, the kernel, and its huge pages.
pub fn machine() -> String {
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = read("/proc/sys/kernel/osrelease");
    let numbers = kernel.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(kernel.len());
    let memory = read("/proc/meminfo");
    let kib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
    let pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let pages = pages.split(['[', ']']).nth(1).unwrap_or("none");
    format!(
        "{} processors, {}, {:.0} GiB, Linux {}, transparent huge pages {pages}",
        std::thread::available_parallelism().map_or(1, usize::from),
        model.map_or("of a kind that does not say", |(_, name)| name.trim()),
        kib.unwrap_or(0.0) / 1048576.0,
        &kernel[..numbers]
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_machine_has_processors() {
        let words = super::machine();
        assert!(words.contains(" processors, ") && words.contains("Linux "), "{words}");
    }
}
