//! The fio jobs of a run, for use with fio alone.

use super::result::BenchResult;

/// Returns the file name and the job of each cell measured with fio. The disk is left open: fio expands the environment
/// variable `DISK`.
pub fn fio_jobs(result: &BenchResult) -> Vec<(String, String)> {
    let mut jobs = Vec::new();
    for cell in &result.cells {
        let mut samples = result.samples.iter();
        let sample = samples.find(|sample| sample.cell == cell.cell);
        let Some(job) = sample.and_then(|sample| sample.measurement.inputs.get("job")) else {
            continue;
        };
        let name: String = cell
            .name
            .chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() {
                    letter
                } else {
                    '-'
                }
            })
            .collect();
        jobs.push((format!("{:03}-{name}.fio", cell.cell.0), for_any_disk(job)));
    }
    jobs
}

/// Removes the paths and logs of the run from a job.
fn for_any_disk(job: &str) -> String {
    let lines = job.lines().filter_map(|line| match line.split_once('=') {
        Some(("filename", _)) => Some("filename=${DISK}".to_owned()),
        Some(("directory", _)) => Some("directory=${DISK}".to_owned()),
        Some(("uri", _)) => Some("uri=${DISK}".to_owned()),
        Some(("write_iops_log" | "log_avg_msec" | "per_job_logs", _)) => None,
        _ => Some(line.to_owned()),
    });
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_job_contains_no_path_of_the_run() {
        let job = "[global]\nbs=4096\nwrite_iops_log=fio-5\n[measured]\nfilename=/srv/vmdisk-bench-x/disk-1\nsize=1\n";
        assert_eq!(
            for_any_disk(job),
            "[global]\nbs=4096\n[measured]\nfilename=${DISK}\nsize=1\n"
        );
    }
}
