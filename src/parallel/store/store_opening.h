#pragma once

#include <memory>
#include <string>

#include "headway/parallel/launch.h"
#include "parallel/store/job_store.h"
#include "parallel/store/store_file.h"

namespace headway {

/// A store that this rank serves or has connected to.
struct OpenedStore {
  std::shared_ptr<JobStore> store;
  std::string prefix;               ///< begins the keys of this meeting
  std::unique_ptr<StoreFile> file;  ///< of rank 0 where the others find the store by a file
};

/// Opens the store of the job: at MASTER_ADDR and MASTER_PORT where they are given, else at a free port of the loopback
/// interface that rank 0 writes into a file. Throws LaunchError naming the address or the file when `limit` is over.
OpenedStore open_store(const LaunchEnvironment& launch, std::chrono::milliseconds limit);

}  // namespace headway
